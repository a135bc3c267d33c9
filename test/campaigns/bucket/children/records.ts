export const BASIN = 'bucket'
export const STREAMS = ['stream-0', 'stream-1', 'stream-2']

/** A record that no other writer has written, and its writer only once. */
export function bodyOf(writer: string, serial: number): string {
  const length = serial % 16 === 5 ? 4_000 : (serial * 37) % 300
  return `${writer}#${serial}#${'x'.repeat(length)}`
}
