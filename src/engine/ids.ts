/** Not `randomUUID`, which browsers keep from pages that are not secure. */
export function secureRandom(): number {
  return globalThis.crypto.getRandomValues(new Uint32Array(1))[0]! / 0x1_0000_0000
}

/** 128 bits as 32 hexadecimal digits, reproducible from a seeded source. */
export function idFrom(random: () => number): string {
  let id = ''
  for (let i = 0; i < 4; i++) {
    id += Math.floor(random() * 0x1_0000_0000)
      .toString(16)
      .padStart(8, '0')
  }
  return id
}
