import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { sha256 } from '../../adapters/console/sha256.ts'

// Lengths around those at which the padding needs another block.
it.each([0, 1, 55, 56, 63, 64, 65, 119, 120, 5_000])('hashes %d bytes as node:crypto does', (length) => {
  const bytes = Uint8Array.from({ length }, (_, i) => (i * 167 + (i >>> 8)) & 0xff)
  expect(Buffer.from(sha256(bytes)).toString('hex')).toBe(createHash('sha256').update(bytes).digest('hex'))
})
