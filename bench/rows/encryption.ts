import type { Measurement } from '../harness/measurement.ts'

const program = 'encryption'
const SUITES = {
  node: '`aes-256-gcm`, `node:crypto`',
  web: '`aes-256-gcm`, WebCrypto',
  aegis: '`aegis-256`, libsodium',
}

export const encryptionRows: Readonly<Record<string, Measurement>> = Object.fromEntries(
  Object.entries(SUITES).flatMap(([suite, named]) => [
    [`encryption-seal-${suite}`, sealing(suite, named)],
    [`encryption-append-${suite}`, onStream(suite, 'append', `awaited append of 1 × 100 B, ${named}`, 1)],
    [`encryption-read-${suite}`, onStream(suite, 'read', `read of 1,000 appends of 100 B, ${named}`, 1_000)],
  ]),
)

function sealing(suite: string, named: string): Measurement {
  const params = { suite, bytes: 1_024 }
  return {
    work: `seal a batch of 1 MiB, records of 1 KiB, ${named}`,
    each: 'a batch',
    usesSources: true,
    ours: { program, side: 'seal batch', params },
    rivals: [{ against: 'sealing each record', contestant: { program, side: 'seal each', params } }],
  }
}

function onStream(suite: string, side: 'append' | 'read', work: string, records: number): Measurement {
  const params = { records, bytes: 100 }
  return {
    work,
    each: side === 'append' ? 'an append' : 'a read',
    usesSources: true,
    most: 100_000,
    ours: { program, side, params: { ...params, suite } },
    rivals: [
      { against: 'a plain stream', contestant: { program, side, params } },
      ...(suite === 'node'
        ? [
            {
              against: 'a plain stream, and the bare cipher for each record',
              contestant: { program, side: side === 'append' ? 'append and seal' : 'read and open', params },
              atLeast: 0.5,
            },
          ]
        : []),
    ],
  }
}
