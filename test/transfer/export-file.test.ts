import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createExportFile, type ExportFile, resumeExportFile } from '../../adapters/transfer/export-file.ts'
import { exportLines } from '../../adapters/transfer/export-lines.ts'
import { gzipMember } from '../../adapters/transfer/gzip.ts'
import { EVERYTHING } from '../../adapters/transfer/name-filter.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { shareOfRuns } from '../support/property-runs.ts'
import { type Endpoint, exported, NOW, openEndpoint } from './support.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'headwater-export-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

let serial = 0
const newPath = () => join(directory, `file-${serial++}`)

async function source(): Promise<Endpoint> {
  const endpoint = await openEndpoint()
  for (const basin of ['basin-a', 'basin-b']) {
    await endpoint.hw.createBasin(basin)
    for (const stream of ['s1', 's2', 's3']) {
      await endpoint.hw.basin(basin).createStream(stream)
      if (stream !== 's2')
        await endpoint.hw
          .basin(basin)
          .stream(stream)
          .append(['x', 'y\u2028', Uint8Array.of(0xff)])
    }
  }
  return endpoint
}

async function finish(
  { sink, point }: ExportFile,
  { service }: Endpoint,
  chunksMax = Number.POSITIVE_INFINITY,
): Promise<void> {
  let chunkCount = 0
  try {
    if (point?.isComplete) return
    for await (const { bytes } of exportLines(service, EVERYTHING, NOW, point)) {
      if (chunkCount++ >= chunksMax) break
      await sink.write(bytes)
    }
  } finally {
    await sink.close()
  }
}

/** Each line is a member of its own, for as many truncation points as possible. */
async function members(text: string): Promise<Uint8Array> {
  const lines = text.split(/(?<=\n)/).map((line) => gzipMember(utf8(line)))
  return Buffer.concat(await Promise.all(lines))
}

describe('an interrupted export', () => {
  it.each([
    ['a file', async (text: string) => utf8(text), (bytes: Buffer) => bytes],
    ['a compressed file', members, gunzipSync],
  ])('continues after truncation at any byte of %s', { tags: ['slow'] }, async (_, contentOf, unpacked) => {
    const endpoint = await source()
    const complete = await exported(endpoint.service)
    const bytes = await contentOf(complete)
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length), async (cut) => {
        const path = newPath()
        await writeFile(path, bytes.subarray(0, cut))
        await finish(await resumeExportFile(path, contentOf === members), endpoint)
        expect(unpacked(await readFile(path)).toString()).toBe(complete)
      }),
      // A run is a whole export.
      shareOfRuns(1 / 2),
    )
  })

  it('is accessible to its owner only', async () => {
    const path = newPath()
    await finish(await createExportFile(path, false), await source())
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  it('contains complete lines when it is stopped', { tags: ['slow'] }, async () => {
    const endpoint = await source()
    const complete = await exported(endpoint.service)
    for (const chunkCount of [1, 4, 7]) {
      const path = newPath()
      await finish(await createExportFile(path, chunkCount % 2 === 0), endpoint, chunkCount)
      const before = await stat(path)
      await finish(await resumeExportFile(path, chunkCount % 2 === 0), endpoint)
      const content = await readFile(path)
      expect((chunkCount % 2 === 0 ? gunzipSync(content) : content).toString()).toBe(complete)
      expect(content.length).toBeGreaterThan(before.size)
    }
  })

  it('ends at the tail of its start, without records appended since', async () => {
    const endpoint = await source()
    const complete = await exported(endpoint.service)
    const path = newPath()
    await writeFile(path, complete.slice(0, complete.indexOf('{"seq_num":1')))
    await endpoint.stream('s1').append('later')
    await finish(await resumeExportFile(path, false), endpoint)
    expect(await readFile(path, 'utf8')).toBe(complete)
  })

  it('leaves a complete file unchanged', async () => {
    const endpoint = await source()
    const path = newPath()
    await finish(await createExportFile(path, true), endpoint)
    const before = await readFile(path)
    const file = await resumeExportFile(path, false)
    expect(file.point).toMatchObject({ isComplete: true, counts: { basins: 2, streams: 6, records: 12 } })
    await file.sink.close()
    expect(await readFile(path)).toEqual(before)
  })

  it('removes the file if it wrote no line', async () => {
    const endpoint = await source()
    const path = newPath()
    const unreachable = endpoint.with({ fetch: () => Promise.reject(new Error('down')) })
    await expect(
      createExportFile(path, true).then((file) => finish(file, { ...endpoint, service: unreachable })),
    ).rejects.toThrow('cannot reach the server: down')
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
    await finish(await createExportFile(path, true), endpoint)
  })

  it('writes the same bytes for the same streams', async () => {
    const endpoint = await source()
    const [a, b] = [newPath(), newPath()]
    for (const path of [a, b]) await finish(await createExportFile(path, true), endpoint)
    expect(await readFile(a)).toEqual(await readFile(b))
  })
})

describe('another kind of file', () => {
  it('is not overwritten', async () => {
    const path = newPath()
    await writeFile(path, 'precious')
    await expect(createExportFile(path, false)).rejects.toThrow('already exists; continue it with `--resume`')
    expect(await readFile(path, 'utf8')).toBe('precious')
  })

  it.each<[string, string | Uint8Array, string]>([
    ['text', 'precious\n', 'not an export'],
    ['JSON', '{"some":"thing"}\n', 'not an export'],
    ['of another version', '{"headwater_export":2,"exported_at":"x"}\n', 'the format has version 2'],
    [
      'compressed by another program',
      gzipSync('{"headwater_export":1,"exported_at":"x"}\n'),
      'by another program',
    ],
    [
      'an export without a stream line',
      '{"headwater_export":1,"exported_at":"x"}\n{"seq_num":1}\n',
      'line 2: unexpected record outside a stream',
    ],
    [
      'an export with lines after its end',
      '{"headwater_export":1,"exported_at":"x"}\n{"export_end":{"basins":0,"streams":0,"records":0}}\nx\n',
      'line 3: unexpected line after the end',
    ],
  ])('stays unchanged: %s', async (_, content, message) => {
    const path = newPath()
    await writeFile(path, content)
    await expect(resumeExportFile(path, false)).rejects.toThrow(message)
    expect(await readFile(path)).toEqual(Buffer.from(content as string))
  })

  it('stays unchanged if it is damaged before its end', { tags: ['slow'] }, async () => {
    const bytes = Buffer.from(await members(await exported((await source()).service)))
    bytes[30]! ^= 1
    const path = newPath()
    await writeFile(path, bytes)
    await expect(resumeExportFile(path, true)).rejects.toThrow('damaged at byte 0')
    expect(await readFile(path)).toEqual(bytes)
  })
})
