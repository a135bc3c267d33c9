import { expect, test } from 'vitest'
import { GroupMemory, joinBytes } from '../../../adapters/storage/postgres/append-writer.ts'

test('contiguous blocks are joined without a copy', () => {
  const memory = new GroupMemory()
  const parts = [10, 20, 30].map((bytes, index) => memory.allocate(bytes).fill(index + 1))
  const joined = joinBytes(parts)
  expect([...joined]).toEqual(parts.flatMap((part) => [...part]))
  expect(joined.buffer).toBe(parts[0]!.buffer)
})

test('other blocks are copied', () => {
  const memory = new GroupMemory()
  const [first, , last] = [10, 20, 30].map((bytes, index) => memory.allocate(bytes).fill(index + 1))
  const elsewhere = new Uint8Array(5).fill(9)
  expect([...joinBytes([first!, last!])]).toEqual([...first!, ...last!])
  expect([...joinBytes([first!, elsewhere])]).toEqual([...first!, ...elsewhere])
})

test('memory is zeroed and never allocated twice', () => {
  const memory = new GroupMemory()
  const allocated = Array.from({ length: 1_000 }, (_, index) => memory.allocate(1 + ((index * 37) % 3_000)))
  for (const [index, bytes] of allocated.entries()) {
    expect(bytes.every((byte) => byte === 0)).toBe(true)
    bytes.fill((index % 255) + 1)
  }
  for (const [index, bytes] of allocated.entries()) {
    expect(bytes.every((byte) => byte === (index % 255) + 1)).toBe(true)
  }
})
