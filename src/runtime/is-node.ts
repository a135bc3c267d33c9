/** Whether the runtime is Node itself: Bun and Deno have the same modules, which differ in detail. */
export function isNode(): boolean {
  const { process, Bun, Deno } = globalThis as {
    process?: { release?: { name?: string | undefined } | undefined } | undefined
    Bun?: unknown
    Deno?: unknown
  }
  return process?.release?.name === 'node' && Bun === undefined && Deno === undefined
}
