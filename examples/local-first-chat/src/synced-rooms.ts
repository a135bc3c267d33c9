import { type Basin, HeadwaterError } from 'headwater'
import { type MirrorState, type SyncedStream, syncedStream } from 'headwater/sync'
import { distinctUntilChanged, filter, firstValueFrom, map, type Observable, Subject, startWith } from 'rxjs'

/** How many records of a room are copied to this device at first. Earlier ones follow on request. */
const COPIED_RECORDS = 1_000

interface OpenStream {
  readonly synced: SyncedStream
  uses: number
}

/**
 * The streams that are in sync at the moment. Each takes one connection, and a browser has six for all tabs:
 * so these are the room that is shown, and those with messages that wait. The others are visited in turn.
 */
export class SyncedRooms {
  readonly #remote: Basin
  readonly #local: Basin
  readonly #open = new Map<string, OpenStream>()
  readonly #changes = new Subject<void>()
  readonly #visited = new Set<string>()

  constructor(remote: Basin, local: Basin) {
    this.#remote = remote
    this.#local = local
  }

  /** All streams that are in sync. */
  get streams(): readonly SyncedStream[] {
    return [...this.#open.values()].map(({ synced }) => synced)
  }

  /** Emits the stream while it is in sync, and undefined while it is not. */
  stream$(name: string): Observable<SyncedStream | undefined> {
    return this.#changes.pipe(
      startWith(undefined),
      map(() => this.#open.get(name)?.synced),
      distinctUntilChanged(),
    )
  }

  /** Keeps a stream in sync until it is released as often as it was acquired. */
  acquire(name: string): SyncedStream {
    let stream = this.#open.get(name)
    if (stream === undefined) {
      stream = { synced: this.#sync(name), uses: 0 }
      this.#open.set(name, stream)
      this.#changes.next()
    }
    stream.uses++
    return stream.synced
  }

  /** Ends the sync of a stream once everything is sent, unless the stream is acquired again. */
  async release(name: string): Promise<void> {
    const stream = this.#open.get(name)
    if (stream === undefined || --stream.uses > 0) return
    await stream.synced.outbox.flush()
    if (stream.uses > 0 || this.#open.get(name) !== stream) return
    this.#open.delete(name)
    this.#changes.next()
    await stream.synced.close()
  }

  /** Syncs each stream for a moment, as far as it is new. Ends at the first one that cannot be reached. */
  async visit(names: readonly string[]): Promise<void> {
    for (const name of names) {
      if (this.#open.has(name) || !(await this.#hasNews(name))) continue
      const { state$ } = this.acquire(name)
      const { kind } = await firstValueFrom(state$.pipe(filter(isSettled)))
      // The first time it may have messages that were written in a tab that is closed.
      void this.release(name).catch(() => {})
      if (kind === 'offline') return
      this.#visited.add(name)
    }
  }

  async #hasNews(name: string): Promise<boolean> {
    if (!this.#visited.has(name)) return true
    const [remote, local] = await Promise.all([
      this.#tailOf(this.#remote, name),
      this.#tailOf(this.#local, name),
    ])
    return remote !== local
  }

  async #tailOf(basin: Basin, name: string): Promise<number | undefined> {
    try {
      return (await basin.stream(name).checkTail()).seqNum
    } catch {
      return undefined
    }
  }

  #sync(name: string): SyncedStream {
    const synced = syncedStream(this.#remote.stream(name), this.#local.stream(name), {
      from: { tailOffset: COPIED_RECORDS },
    })
    synced.state$.pipe(filter(isMissing)).subscribe(() => {
      this.create(name).then(
        () => synced.mirror.retry(),
        () => {},
      )
    })
    return synced
  }

  /** Creates a stream on the server, unless it exists. */
  async create(name: string): Promise<void> {
    try {
      await this.#remote.createStream(name)
    } catch (error) {
      if (!HeadwaterError.is(error) || error.code !== 'resource_already_exists') throw error
    }
  }
}

function isSettled({ kind }: MirrorState): boolean {
  return kind !== 'connecting' && kind !== 'catching-up'
}

/** Returns whether the stream is not on the server yet: its room was created on this device. */
function isMissing(state: MirrorState): boolean {
  return state.kind === 'offline' && state.error.code === 'stream_not_found'
}
