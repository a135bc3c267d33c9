import type { Collection } from '../../../src/storage/contract.ts'
import { ByteReader } from './bytes.ts'
import type { CatalogEntry } from './catalog.ts'
import { CHECKPOINT_FRAME_BYTES_MAX } from './checkpoint-writer.ts'
import { corrupt } from './failures.ts'
import { readHead, readList, readRun, readSegment } from './field-codec.ts'
import { Log } from './log.ts'
import { Run } from './run.ts'
import type { SequentialReader } from './sequential-reader.ts'
import { State } from './state.ts'

/** Reads the state that a checkpoint holds. */
export async function readCheckpoint(reader: SequentialReader): Promise<State> {
  const { salt } = await reader.header()
  const content = new CheckpointContent()
  for (;;) {
    const { offset } = reader
    const payload = await reader.frame(salt, CHECKPOINT_FRAME_BYTES_MAX)
    if (payload === undefined) throw corrupt(reader.name, offset, 'the end is missing')
    try {
      if (content.add(payload)) return content.state
    } catch (error) {
      throw corrupt(reader.name, offset, (error as Error).message)
    }
  }
}

/** What the frames of a checkpoint say, one after the other. */
export class CheckpointContent {
  readonly state = new State()
  readonly #onItem: (item: CatalogEntry | Log) => void

  /** `onItem` is told each document and log. */
  constructor(onItem: (item: CatalogEntry | Log) => void = () => {}) {
    this.#onItem = onItem
  }

  /** Adds a frame; returns whether it was the last. Throws `RangeError` for one that does not belong there. */
  add(payload: Buffer): boolean {
    const fields = new ByteReader(payload)
    const letter = String.fromCharCode(fields.byte())
    if (letter === 'E') {
      readEnd(fields, this.state)
      return true
    }
    const readItem = ITEMS[letter]
    if (readItem === undefined) throw new RangeError(`a frame of unknown kind ${letter}`)
    while (fields.left > 0) {
      const item = readItem(fields, this.state)
      if (item !== undefined) this.#onItem(item)
    }
    return false
  }
}

type ReadItem = (fields: ByteReader, state: State) => CatalogEntry | Log | undefined

const ITEMS: Readonly<Record<string, ReadItem>> = {
  S(fields, state) {
    state.addSegment(readSegment(fields))
    return undefined
  },
  D(fields, state) {
    const collection = fields.string() as Collection
    const key = fields.string()
    const document = { version: fields.varint(), text: fields.string() }
    state.catalog.set(collection, key, document)
    return { collection, key, ...document }
  },
  L(fields, state) {
    const log = new Log(fields.varint(), fields.string(), readHead(fields))
    const runs = readList(fields, () => {
      const facts = readRun(fields)
      const home = state.segments.get(facts.segment)
      if (home === undefined) throw new RangeError(`there is no segment ${facts.segment}`)
      const run = new Run(home, facts)
      home.add(run)
      log.meteredBytes += run.meteredBytes
      return run
    })
    if (runs.length > 0) log.runs = runs
    log.findNextExpiry()
    state.addLog(log)
    return log
  },
}

/** What stood there twice is counted once. */
function readEnd(fields: ByteReader, state: State): void {
  state.nextLog = fields.varint()
  state.nextVersion = fields.varint()
  const counts = [fields.varint(), fields.varint(), fields.varint()]
  const found = [state.segments.size, state.catalog.size, state.logsByNumber.size]
  if (found.some((count, i) => count !== counts[i])) {
    throw new RangeError(
      `it holds ${found.join(', ')} segments, documents and logs, and not ${counts.join(', ')}`,
    )
  }
}
