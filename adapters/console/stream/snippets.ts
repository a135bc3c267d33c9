import type { SequencedRecord } from '../../../src/model/record.ts'
import type { ConnectionTarget } from '../connection.ts'
import { type CurlTarget, quotedForShell } from '../curl.ts'

/** A command of `headwater` that reads one record. The token is the variable `HEADWATER_TOKEN`. */
export function readCommand(
  { basin, stream, encryptionKey }: CurlTarget,
  { seqNum }: Pick<SequencedRecord, 'seqNum'>,
  { url }: ConnectionTarget,
): string {
  const key = encryptionKey === '' ? '' : ' --encryption-key "$ENCRYPTION_KEY"'
  const name = quotedForShell(`${basin}/${stream}`)
  return `headwater read ${name} --seq-num ${seqNum} --count 1 --json${key} --url ${quotedForShell(url)}`
}

/** A program that reads one record. */
export function readProgram(
  { basin, stream, encryptionKey }: CurlTarget,
  { seqNum }: Pick<SequencedRecord, 'seqNum'>,
  { url, headerPrefix }: ConnectionTarget,
  isAuthorized: boolean,
): string {
  const options = [
    `url: ${JSON.stringify(url)}`,
    ...(isAuthorized ? ['token: process.env.HEADWATER_TOKEN'] : []),
    ...(headerPrefix === 'svc' ? [] : [`headerPrefix: ${JSON.stringify(headerPrefix)}`]),
  ]
  const key = encryptionKey === '' ? '' : ', { encryptionKey: process.env.ENCRYPTION_KEY }'
  return `import { connect } from 'headwater/client'

const hw = await connect({ ${options.join(', ')} })
const stream = hw.basin(${JSON.stringify(basin)}).stream(${JSON.stringify(stream)}${key})
const { records } = await stream.readBatch({ seqNum: ${seqNum}, count: 1 })
console.log(records[0])
`
}
