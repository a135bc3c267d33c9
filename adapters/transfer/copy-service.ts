import type { Headwater } from '../../src/api/headwater.ts'
import { Service, type ServiceOptions, type StreamPath } from './service.ts'

/**
 * The source of a copy. Reads a stream from the last record that the target has, so that a copy that is
 * repeated transfers only what is new. The last record itself is compared.
 */
export class CopySource extends Service {
  /** How many records the target had already. */
  compared = 0
  readonly #target: Service

  constructor(hw: Headwater, options: ServiceOptions, target: Service) {
    super(hw, options)
    this.#target = target
  }

  override async read(...[stream, seqNum, count]: Parameters<Service['read']>): ReturnType<Service['read']> {
    if (seqNum > 0) return super.read(stream, seqNum, count)
    const last = (await this.#tailOfCopy(stream)) - 1
    const read = await super.read(stream, Math.max(last, 0), count)
    if ('records' in read && read.records[0]?.seqNum === last) this.compared++
    return read
  }

  async #tailOfCopy(stream: StreamPath): Promise<number> {
    // Reading the tail of a missing stream could create it.
    const copy = await this.#target.findStream(stream)
    return copy === undefined ? 0 : ((await this.#target.tail(copy))?.seqNum ?? 0)
  }
}
