/**
 * What the hand-written codecs gain over the generated code of `@bufbuild/protobuf`: records at rest
 * (`src/storage/block-codec.ts`) and append input (`src/wire/proto-append.ts`), from and to the model's records. Ratios of
 * medians, taken in one run in alternation, so that they mean something on a busy machine; the times beside them do not.
 *
 *     npx esbuild bench/block-codec.ts --bundle --platform=node --format=esm | node --input-type=module -
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { SequencedRecord } from '../src/model/record.ts'
import { decodeRecords, encodeRecords } from '../src/storage/block-codec.ts'
import { AppendInputSchema, ReadBatchSchema } from '../src/wire/gen/records_pb.ts'
import { decodeAppendInput } from '../src/wire/proto-append.ts'

const RECORDS = 1000
const BODY_BYTES = [100, 1024]
const ROUNDS = 60
const ROUND_MS = 5

/** Keeps the results of what is measured, so that nothing is optimised away. */
let kept: unknown

function sampleRecords(bodyBytes: number): SequencedRecord[] {
  return Array.from({ length: RECORDS }, (_, index) => ({
    seqNum: 1_000_000 + index,
    timestamp: 1_700_000_000_000 + index,
    headers: [],
    body: new Uint8Array(bodyBytes).fill(index),
  }))
}

function generatedEncode(records: readonly SequencedRecord[]): Uint8Array {
  const message = create(ReadBatchSchema, {
    records: records.map(({ seqNum, timestamp, headers, body }) => ({
      seqNum: BigInt(seqNum),
      timestamp: BigInt(timestamp),
      headers: headers.map(([name, value]) => ({ name, value })),
      body,
    })),
  })
  return toBinary(ReadBatchSchema, message)
}

function generatedDecode(data: Uint8Array): SequencedRecord[] {
  return fromBinary(ReadBatchSchema, data).records.map(({ seqNum, timestamp, headers, body }) => ({
    seqNum: Number(seqNum),
    timestamp: Number(timestamp),
    headers: headers.map(({ name, value }) => [name, value] as const),
    body,
  }))
}

function generatedDecodeInput(data: Uint8Array) {
  const { records, matchSeqNum, fencingToken } = fromBinary(AppendInputSchema, data)
  const inputs = records.map(({ timestamp, headers, body }) => ({
    timestamp: timestamp === undefined ? undefined : Number(timestamp),
    headers: headers.map(({ name, value }) => [name, value] as const),
    body,
  }))
  return { inputs, conditions: { matchSeqNum, fencingToken } }
}

/** Microseconds for one call, over as many calls as fit into a round. */
function round(work: () => unknown): number {
  const start = performance.now()
  let calls = 0
  do {
    kept = work()
    calls++
  } while (performance.now() - start < ROUND_MS)
  return ((performance.now() - start) * 1000) / calls
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!
}

function compare(title: string, handWritten: () => unknown, generated: () => unknown): void {
  const times = { handWritten: [] as number[], generated: [] as number[] }
  for (let i = 0; i < ROUNDS; i++) {
    times.handWritten.push(round(handWritten))
    times.generated.push(round(generated))
  }
  // The first rounds are the compiler's.
  const [ours, theirs] = [times.handWritten, times.generated].map((all) => median(all.slice(ROUNDS / 4)))
  const ratio = (theirs! / ours!).toFixed(1)
  console.log(
    `${title.padEnd(32)} ${ratio.padStart(6)} ×   (${ours!.toFixed(0)} µs, generated ${theirs!.toFixed(0)} µs)`,
  )
}

for (const bodyBytes of BODY_BYTES) {
  const records = sampleRecords(bodyBytes)
  const block = encodeRecords(records)
  const input = toBinary(
    AppendInputSchema,
    create(AppendInputSchema, { records: records.map(({ body }) => ({ body })) }),
  )
  const title = `${RECORDS} × ${bodyBytes} B`
  compare(
    `encode block, ${title}`,
    () => encodeRecords(records),
    () => generatedEncode(records),
  )
  compare(
    `decode block, ${title}`,
    () => decodeRecords(block),
    () => generatedDecode(block),
  )
  compare(
    `decode append, ${title}`,
    () => decodeAppendInput(input, 'bad_frame'),
    () => generatedDecodeInput(input),
  )
}
if (kept === undefined) throw new Error('nothing was measured')
