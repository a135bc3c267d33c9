import type { Stream } from '../../src/api/stream.ts'
import type { StreamConfigInput } from '../../src/model/config.ts'
import { invalid, isStreamMissing } from '../../src/model/errors.ts'
import { codeOf } from '../../src/sync/errors.ts'

/** Keeps records forever and their timestamps unchanged, and rejects records of the app, which have none. */
export const COPY_CONFIG = {
  retentionPolicy: 'infinite',
  timestamping: { mode: 'client-require', uncapped: true },
  deleteOnEmpty: { minAgeSeconds: 0 },
} as const satisfies StreamConfigInput

/** How often a copy is looked up again while others delete and create it. */
export const ATTEMPTS_MAX = 10

/** The local copy of a remote stream. A new copy is an empty stream that begins with sequence number 0. */
export class LocalCopy {
  readonly #stream: Stream
  /** The stream, which is never created as an ordinary one. */
  readonly existing: Stream

  constructor(stream: Stream) {
    this.#stream = stream
    this.existing = stream.sibling(stream.name, { autoCreate: false, config: COPY_CONFIG })
  }

  /** Resolves to the identity of the copy, which is created if there is none. */
  async ensure(): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      try {
        const identity = await this.existing.identity()
        const { timestamping } = await this.existing.config()
        if (timestamping.mode === 'client-require' && timestamping.uncapped) return identity
        throw invalid(
          `stream \`${this.#stream.name}\` exists and is not a copy of a mirror; use another name`,
          'local',
        )
      } catch (error) {
        if (!isStreamMissing(error) || attempt === ATTEMPTS_MAX) throw error
      }
      await this.create(0)
    }
  }

  /** Creates an empty copy that begins with a sequence number. Resolves to false if there is a copy. */
  async create(seqNum: number): Promise<boolean> {
    try {
      // The lowest timestamp is not known. It tells that nothing was copied yet.
      await this.#stream.restore({ config: COPY_CONFIG, start: { seqNum, timestamp: 0 } })
      return true
    } catch (error) {
      if (codeOf(error) === 'resource_already_exists') return false
      throw error
    }
  }
}
