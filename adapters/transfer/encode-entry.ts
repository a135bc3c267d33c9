import type { Header, SequencedRecord } from '../../src/index.ts'
import { textOf } from '../../src/model/bytes.ts'
import { encodeBase64 } from '../../src/wire/base64.ts'
import { basinConfigJson, streamConfigJson } from '../../src/wire/json-config-output.ts'
import { positionJson } from '../../src/wire/json-position.ts'
import { EXPORT_VERSION, type ExportEntry } from './export-entry.ts'

/** A line of an export without its line break. The order of the members is part of the format: it tells the lines apart. */
export function encodeEntry(entry: ExportEntry): string {
  switch (entry.kind) {
    case 'header': {
      const { exportedAt, basins, streams } = entry
      return JSON.stringify({ headwater_export: EXPORT_VERSION, exported_at: exportedAt, basins, streams })
    }
    case 'basin':
      return `{"basin":${JSON.stringify(entry.name)},"config":${basinConfigJson(entry.config)}}`
    case 'stream': {
      const { name, basin, config, cipher, createdAt, start, tail, fencingToken } = entry.stream
      const names = `{"stream":${JSON.stringify(name)},"basin":${JSON.stringify(basin)}`
      const state = `"start":${start},"tail":${positionJson(tail)},"fencing_token":${JSON.stringify(fencingToken ?? null)}}`
      const kind = `"cipher":${JSON.stringify(cipher)},"created_at":${JSON.stringify(createdAt ?? null)}`
      return `${names},"config":${streamConfigJson(config)},${kind},${state}`
    }
    case 'record':
      return encodeRecord(entry.record)
    case 'stream-end':
      return JSON.stringify({ stream_end: entry.name, records: entry.records })
    case 'end': {
      const { basins, streams, records } = entry.counts
      return JSON.stringify({ export_end: { basins, streams, records } })
    }
  }
}

function encodeRecord({ seqNum, timestamp, headers, body }: SequencedRecord): string {
  const position = `{"seq_num":${seqNum},"timestamp":${timestamp}`
  const text = textOf(body)
  const bodyMember =
    text === undefined ? `"body_base64":"${encodeBase64(body)}"` : `"body":${JSON.stringify(text)}`
  return `${position}${headers.length === 0 ? '' : `,${headersMember(headers)}`},${bodyMember}}`
}

/** As text if all of them are text. */
function headersMember(headers: readonly Header[]): string {
  const texts: string[] = []
  for (const header of headers) {
    for (const bytes of header) {
      const text = textOf(bytes)
      if (text === undefined) return `"headers_base64":${pairs(headers.flat().map(encodeBase64))}`
      texts.push(text)
    }
  }
  return `"headers":${pairs(texts)}`
}

function pairs(flat: readonly string[]): string {
  const items: string[] = []
  for (let i = 0; i < flat.length; i += 2)
    items.push(`[${JSON.stringify(flat[i])},${JSON.stringify(flat[i + 1])}]`)
  return `[${items.join(',')}]`
}
