// restate-sdk 1.17 and the resonate sdk call Promise.withResolvers (Node >= 22). This lets them run on Node 20.
Promise.withResolvers ??= function withResolvers() {
  let resolve, reject;
  const promise = new this((a, b) => {
    resolve = a;
    reject = b;
  });
  return { promise, resolve, reject };
};
