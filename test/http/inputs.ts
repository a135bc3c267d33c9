import { create, toBinary } from '@bufbuild/protobuf'
import { encodeMessageFrame } from '../../src/wire/frame.ts'
import { AppendInputSchema } from '../wire/gen/records_pb.ts'

/** An `AppendInput` message with these bodies. */
export function inputMessage(
  bodies: readonly string[],
  conditions: { readonly matchSeqNum?: number; readonly fencingToken?: string } = {},
): Uint8Array {
  const { matchSeqNum, fencingToken } = conditions
  return toBinary(
    AppendInputSchema,
    create(AppendInputSchema, {
      records: bodies.map((body) => ({ body: new TextEncoder().encode(body), headers: [] })),
      ...(matchSeqNum !== undefined && { matchSeqNum: BigInt(matchSeqNum) }),
      ...(fencingToken !== undefined && { fencingToken }),
    }),
  )
}

export function inputFrame(...input: Parameters<typeof inputMessage>): Uint8Array {
  return encodeMessageFrame(inputMessage(...input))
}
