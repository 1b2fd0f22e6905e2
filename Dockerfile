# One image, one entry per service: docker run holdfast orchestrator | worker | watcher | gateway
#
# VARIANT  holdfast    engine, dashboard, command line; no models
#          inference   and transformers.js with onnxruntime on the CPU
#          gpu         the same on CUDA 12 and cuDNN 9, with onnxruntime's CUDA provider (linux/amd64)
ARG VARIANT=holdfast
# Arguments, so that a mirror or a stand-in can take their place. `npm run images` writes the digest beside each tag.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim
ARG BASE_IMAGE=debian:bookworm-slim
ARG CUDA_IMAGE=nvidia/cuda:12.8.1-cudnn-runtime-ubuntu24.04

FROM ${NODE_IMAGE} AS lockfile
WORKDIR /holdfast
ENV NPM_CONFIG_UPDATE_NOTIFIER=false
COPY package.json package-lock.json .npmrc ./

# What runs: compiled services and the dashboard.
FROM lockfile AS build
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts
COPY . .
RUN npm run build && find dist \( -name '*.d.ts' -o -name '*.map' \) -exec rm -f {} +

# What it needs, at the versions of the lockfile, without sources, declarations, maps, tests and texts.
FROM lockfile AS dependencies
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts --omit=dev \
  && find node_modules -type d \( -name test -o -name tests -o -name docs -o -name benchmarks \) -prune -exec rm -rf {} + \
  && find node_modules \( -name '*.map' -o -name '*.md' -o -name '*.test.*' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' \) -exec rm -f {} +

# The optional peer becomes a dependency; the lockfile says which version, and what nothing needs then goes, with
# the empty folders npm leaves. Of its native code stays what this
# platform runs: onnxruntime brings five platforms, and its browser half is compiled into transformers.js already.
FROM lockfile AS inference-dependencies
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts
RUN node -e 'const fs = require("fs"), p = JSON.parse(fs.readFileSync("package.json")); \
    p.dependencies["@huggingface/transformers"] = p.devDependencies["@huggingface/transformers"]; \
    p.devDependencies = {}; delete p.peerDependencies; delete p.peerDependenciesMeta; \
    fs.writeFileSync("package.json", JSON.stringify(p));'
RUN npm prune --ignore-scripts --omit=dev --offline \
  && cd node_modules \
  && { rmdir @* 2>/dev/null || true; } \
  && rm -rf onnxruntime-web/dist \
  && find onnxruntime-node/bin -type f ! -path "*/linux/$(node -p process.arch)/*" -exec rm -f {} + \
  && find @huggingface/transformers/dist -type f ! -name transformers.node.mjs -exec rm -f {} + \
  && find . -type d \( -name test -o -name tests -o -name docs -o -name benchmarks \) -prune -exec rm -rf {} + \
  && find . \( -name '*.map' -o -name '*.md' -o -name '*.test.*' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' \) -exec rm -f {} + \
  && ln -s /models @huggingface/transformers/.cache

# From where onnxruntime publishes it. TensorRT is not in the base image: its provider could never be loaded.
FROM inference-dependencies AS gpu-dependencies
ARG CUDA_PROVIDER=cuda12
RUN ONNXRUNTIME_NODE_INSTALL=${CUDA_PROVIDER} node node_modules/onnxruntime-node/script/install.js \
  && find node_modules/onnxruntime-node -name '*tensorrt*' -exec rm -f {} +

FROM ${BASE_IMAGE} AS holdfast-base
COPY --from=dependencies /holdfast/node_modules /holdfast/node_modules

FROM ${BASE_IMAGE} AS inference-base
COPY --from=inference-dependencies /holdfast/node_modules /holdfast/node_modules

FROM ${CUDA_IMAGE} AS gpu-base
COPY --from=gpu-dependencies /holdfast/node_modules /holdfast/node_modules

# No npm, no compiler, a user without rights. Nothing is written but to /tmp and to the model cache, and to
# /keys by the service that makes the keys.
FROM ${VARIANT}-base
COPY --from=lockfile /usr/local/bin/node /usr/local/bin/node
COPY --from=build /holdfast/package.json /holdfast/package.json
COPY --from=build /holdfast/bin /holdfast/bin
COPY --from=build /holdfast/dist /holdfast/dist
RUN ln -s /holdfast/bin/holdfast.js /usr/local/bin/holdfast \
  && echo 'holdfast:x:10001:10001::/tmp:/usr/sbin/nologin' >> /etc/passwd \
  && echo 'holdfast:x:10001:' >> /etc/group \
  && mkdir /app /models && chown 10001:10001 /models \
  && for role in nats provisioner orchestrator worker watcher gateway client; do mkdir -p "/keys/$role"; done \
  && chown -R 10001:10001 /keys
ENV NODE_ENV=production HOLDFAST_APP=/app/app.ts METRICS_PORT=9464
WORKDIR /app
USER 10001:10001
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --start-interval=2s --retries=3 CMD ["holdfast", "health"]
ENTRYPOINT ["holdfast"]
