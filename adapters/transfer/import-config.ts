import { sameConfig } from '../../src/core/provision.ts'
import type { StreamConfig } from '../../src/model/config.ts'
import type { ExportedStream } from './export-entry.ts'
import { type Service, streamLabel } from './service.ts'
import { TransferError } from './transfer-error.ts'

const DAY_SECONDS = 86_400
/** How long an interrupted import of an empty stream can be continued before the stream is deleted. */
const MIN_AGE_SECONDS = 30 * DAY_SECONDS
const MARKER_COUNT = 2 ** 24

/**
 * The temporary configuration of a stream during its import, under which records keep their timestamps and an
 * empty stream is not deleted. Records appended under `expiring` expire after a second, so a concurrent
 * configuration change must never go unnoticed: the age for `deleteOnEmpty` contains a random marker of the
 * import, and the configuration must still have it before each change and at the end. No append of the import
 * is in flight at these times, so every append was made under its intended configuration.
 */
export class ImportConfig {
  readonly importing: StreamConfig
  readonly expiring: StreamConfig
  readonly #stream: ExportedStream
  readonly #service: Service
  /** The last configuration that this import set. */
  #current: StreamConfig | undefined

  constructor(service: Service, stream: ExportedStream) {
    this.#service = service
    this.#stream = stream
    const marker = crypto.getRandomValues(new Uint32Array(1))[0]! % MARKER_COUNT
    this.importing = {
      ...stream.config,
      timestamping: { mode: 'client-require', uncapped: true },
      deleteOnEmpty: { minAgeSeconds: MIN_AGE_SECONDS + marker },
    }
    this.expiring = { ...this.importing, retentionPolicy: { ageSeconds: 1 } }
  }

  /** Creates the stream with the configuration {@link importing}. */
  async create(create: (config: StreamConfig) => Promise<unknown>): Promise<void> {
    await create(this.importing)
    this.#current = this.importing
  }

  /** Changes the configuration. Requires that no append is in flight. */
  async change(config: StreamConfig): Promise<void> {
    await this.check()
    await this.#service.ensureStream(this.#stream, config)
    this.#current = config
  }

  /**
   * Rejects with {@link TransferError} if the stream was deleted or configured by others since the last
   * change.
   */
  async check(): Promise<void> {
    if (this.#current === undefined) return
    const current = await this.#service.streamConfig(this.#stream)
    if (current === undefined)
      throw new TransferError(`${streamLabel(this.#stream)} was deleted during the import`)
    if (sameConfig(current, this.#current)) return
    throw new TransferError(
      `${streamLabel(this.#stream)} was reconfigured during the import, perhaps by another import, ` +
        'and may have lost records; delete it and import it again',
    )
  }
}
