/** Keys of NATS users, accounts and operators. */
import { nkeys } from "@nats-io/nats-core";

export interface KeyPair {
  /** Secret; never log it. */
  seed: string;
  publicKey: string;
}

const makers = { user: nkeys.createUser, account: nkeys.createAccount, operator: nkeys.createOperator };

export function createKeys(kind: keyof typeof makers): KeyPair {
  const pair = makers[kind]();
  return { seed: new TextDecoder().decode(pair.getSeed()), publicKey: pair.getPublicKey() };
}

export const publicKeyOf = (seed: string): string => keysOf(seed).getPublicKey();

export const signWith = (seed: string, data: Uint8Array): Uint8Array => keysOf(seed).sign(data);

const keysOf = (seed: string) => nkeys.fromSeed(new TextEncoder().encode(seed.trim()));
