/** Whether the runtime is Node itself: Bun and Deno have the same modules, which differ in detail. */
export function isNode(): boolean {
  const { process, Bun, Deno } = globalThis as {
    process?: { release?: { name?: string | undefined } | undefined } | undefined
    Bun?: unknown
    Deno?: unknown
  }
  return process?.release?.name === 'node' && Bun === undefined && Deno === undefined
}

/** The part of `node:crypto` that the library uses. */
export interface NodeCrypto {
  createHash(name: 'sha256'): { update(bytes: Uint8Array): { digest(encoding: 'hex'): string } }
  createCipheriv(name: 'aes-256-gcm', key: Uint8Array, nonce: Uint8Array): NodeCipher
  createDecipheriv(
    name: 'aes-256-gcm',
    key: Uint8Array,
    nonce: Uint8Array,
    options: { readonly authTagLength: number },
  ): NodeDecipher
}

interface NodeCipher {
  setAAD(associatedData: Uint8Array): void
  update(data: Uint8Array): Uint8Array
  /** Ends the operation. A decipher throws if the authentication tag does not match. */
  final(): Uint8Array
  getAuthTag(): Uint8Array
}

interface NodeDecipher extends Omit<NodeCipher, 'getAuthTag'> {
  setAuthTag(tag: Uint8Array): void
}

/** Returns a module of Node if the runtime has it, without an import that a bundler would follow. */
export function nodeModule<Module>(id: string): Module | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(id: string): unknown } | undefined }
  return process?.getBuiltinModule?.(id) as Module | undefined
}

export function nodeCrypto(): NodeCrypto | undefined {
  return nodeModule('node:crypto')
}
