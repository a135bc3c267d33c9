import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exportEntries } from '../../adapters/transfer/export-entries.ts'
import { ExportFile } from '../../adapters/transfer/export-file.ts'
import { linesOfEntries } from '../../adapters/transfer/lines.ts'
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

/** Writes the rest of an export, or as many batches of it. */
async function finish(
  file: ExportFile,
  { service }: Pick<Endpoint, 'service'>,
  batchesMax = Number.POSITIVE_INFINITY,
): Promise<void> {
  async function* lines() {
    let batches = 0
    const { progress } = file
    for await (const chunk of linesOfEntries(
      exportEntries(service, { filter: EVERYTHING, now: NOW, progress }),
    )) {
      if (batches++ >= batchesMax) return
      yield chunk
    }
  }
  try {
    if (!file.progress.isComplete) await file.write(lines())
  } finally {
    await file.close()
  }
}

describe('an interrupted export', () => {
  it('continues after truncation at any byte', { tags: ['slow'] }, async () => {
    const endpoint = await source()
    const complete = await exported(endpoint.service)
    const bytes = utf8(complete)
    const headerEnd = complete.indexOf('\n') + 1
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: headerEnd, max: bytes.length }), async (cut) => {
        const path = newPath()
        await writeFile(path, bytes.subarray(0, cut))
        await finish(await ExportFile.resume(path), endpoint)
        expect(await readFile(path, 'utf8')).toBe(complete)
      }),
      // A run is a whole export.
      shareOfRuns(1 / 2),
    )
  })

  it('is accessible to its owner only', async () => {
    const path = newPath()
    await finish(await ExportFile.create(path), await source())
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  it('contains complete lines when it is stopped', async () => {
    const endpoint = await source()
    const complete = await exported(endpoint.service)
    for (const batches of [3, 4, 7]) {
      const path = newPath()
      await finish(await ExportFile.resume(path), endpoint, batches)
      expect(complete.startsWith(await readFile(path, 'utf8'))).toBe(true)
      await finish(await ExportFile.resume(path), endpoint)
      expect(await readFile(path, 'utf8')).toBe(complete)
    }
  })

  it('ends at the tail of its start, without records appended since', async () => {
    const endpoint = await source()
    const complete = await exported(endpoint.service)
    const path = newPath()
    await writeFile(path, complete.slice(0, complete.indexOf('{"seq_num":1')))
    await endpoint.stream('s1').append('later')
    await finish(await ExportFile.resume(path), endpoint)
    expect(await readFile(path, 'utf8')).toBe(complete)
  })

  it('leaves a complete file unchanged', async () => {
    const endpoint = await source()
    const path = newPath()
    await finish(await ExportFile.create(path), endpoint)
    const before = await readFile(path)
    const file = await ExportFile.resume(path)
    expect(file.progress).toMatchObject({
      isComplete: true,
      counts: { basins: 2, streams: 6, records: 12 },
    })
    await file.close()
    expect(await readFile(path)).toEqual(before)
  })

  it('removes the file if it wrote no stream', async () => {
    const endpoint = await source()
    const path = newPath()
    const unreachable = endpoint.with({ fetch: () => Promise.reject(new Error('down')) })
    const failing = ExportFile.create(path).then((file) => finish(file, { service: unreachable }))
    await expect(failing).rejects.toThrow('cannot reach the server: down')
    await expect(stat(path)).rejects.toMatchObject({ code: 'ENOENT' })
    await finish(await ExportFile.create(path), endpoint)
  })
})

describe('another kind of file', () => {
  it('is not overwritten', async () => {
    const path = newPath()
    await writeFile(path, 'precious')
    await expect(ExportFile.create(path)).rejects.toThrow('already exists')
    expect(await readFile(path, 'utf8')).toBe('precious')
  })

  it.each<[string, string | Uint8Array, string]>([
    ['text', 'precious\n', 'invalid JSON'],
    ['JSON', '{"some":"thing"}\n', 'not a line of an export'],
    [
      'of another version',
      '{"headwater_export":2,"exported_at":"2030-01-01T00:00:00Z"}\n',
      'the format has version 2',
    ],
    ['compressed', gzipSync('{"headwater_export":1}\n'), 'not a file that an export can continue'],
    ['part of a header', '{"headwater_export":1', 'not a file that an export can continue'],
    [
      'an export without a stream line',
      '{"headwater_export":1,"exported_at":"2030-01-01T00:00:00Z"}\n{"seq_num":1}\n',
      'line 2: ',
    ],
    [
      'an export with lines after its end',
      '{"headwater_export":1,"exported_at":"2030-01-01T00:00:00Z"}\n{"export_end":{"basins":0,"streams":0,"records":0}}\n{"stream_end":"s","records":0}\n',
      'line 3: unexpected line after the end',
    ],
  ])('stays unchanged: %s', async (_, content, message) => {
    const path = newPath()
    await writeFile(path, content)
    await expect(ExportFile.resume(path)).rejects.toThrow(message)
    expect(await readFile(path)).toEqual(Buffer.from(content as string))
  })
})
