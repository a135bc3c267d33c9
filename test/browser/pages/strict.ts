/** What becomes of `aegis-256` where the page permits no WebAssembly. */
export async function withoutWasm(): Promise<string> {
  const { aegis256 } = await import('../../../adapters/aegis-256/index.ts')
  return aegis256().then(
    () => 'works',
    (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
  )
}
