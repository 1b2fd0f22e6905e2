/** An address as it may be shown: never with a user or a password in it. */
export const maskUrl = (url: string): string => url.replaceAll(/\/\/[^@/,]*@/g, "//***@");
