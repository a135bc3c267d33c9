import { sameConfig } from '../../src/core/provision.ts'
import type { StreamConfig } from '../../src/index.ts'
import type { ExportedStream } from './export-entry.ts'
import { aboutStream, type Service } from './service.ts'
import { TransferError } from './transfer-error.ts'

const DAY_SECONDS = 86_400
/** An import that was interrupted may wait so long to be gone on with before its stream, if it is empty, is deleted. */
const MIN_AGE_SECONDS = 30 * DAY_SECONDS
const MARKS = 2 ** 24

/**
 * The configuration that a stream has while it is imported: records keep their timestamps, and nothing deletes it. What is appended under the `fleeting` one
 * expires after a second, so nobody else's record must ever get under it unnoticed: the age for deletion when empty is chosen by chance and marks the
 * configurations of one import, and before each change, and at the end, the last one must still be in place. As no append of the import is under way then,
 * all of them were made under the configuration that they were meant for.
 */
export class HeldConfig {
  readonly provisional: StreamConfig
  readonly fleeting: StreamConfig
  readonly #stream: ExportedStream
  readonly #service: Service
  /** The last one that this import has put. */
  #put: StreamConfig | undefined

  constructor(service: Service, stream: ExportedStream) {
    this.#service = service
    this.#stream = stream
    const mark = crypto.getRandomValues(new Uint32Array(1))[0]! % MARKS
    this.provisional = {
      ...stream.config,
      timestamping: { mode: 'client-require', uncapped: true },
      deleteOnEmpty: { minAgeSeconds: MIN_AGE_SECONDS + mark },
    }
    this.fleeting = { ...this.provisional, retentionPolicy: { ageSeconds: 1 } }
  }

  /** Makes the stream with the provisional configuration. */
  async create(create: (config: StreamConfig) => Promise<unknown>): Promise<void> {
    await create(this.provisional)
    this.#put = this.provisional
  }

  /** To be called while no append is under way. */
  async change(config: StreamConfig): Promise<void> {
    await this.check()
    await this.#service.ensureStream(this.#stream, config)
    this.#put = config
  }

  /** Throws when the stream was deleted, or configured by somebody else, since this import configured it. */
  async check(): Promise<void> {
    if (this.#put === undefined) return
    const current = await this.#service.streamConfig(this.#stream)
    if (current === undefined) throw new TransferError(`${aboutStream(this.#stream)} was deleted meanwhile`)
    if (sameConfig(current, this.#put)) return
    throw new TransferError(
      `${aboutStream(this.#stream)}: somebody else, maybe another import, has configured it meanwhile. Records of it may be lost: delete it and import it anew`,
    )
  }
}
