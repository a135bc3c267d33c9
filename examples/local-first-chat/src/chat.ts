import { type Basin, type Headwater, HeadwaterError, type OpenOptions, open } from 'headwater'
import { type ConnectOptions, connect } from 'headwater/client'
import type { MirrorState, SyncedStream } from 'headwater/sync'
import {
  BehaviorSubject,
  combineLatest,
  distinctUntilChanged,
  filter,
  firstValueFrom,
  map,
  type Observable,
  Subject,
  shareReplay,
  startWith,
  switchMap,
  tap,
} from 'rxjs'
import { actionOf, weightiest } from './connection.ts'
import { Room } from './room.ts'
import { isRoomName, roomNameOf } from './room-name.ts'
import { SyncedRooms } from './synced-rooms.ts'

const PREFIX = 'rooms/'
const ADDED_ROOMS = 'added-rooms'
const LIST_LIMIT = 1000

/** Where the streams of the chat are. */
export interface ChatOptions {
  /** The storage of this device. */
  readonly local: OpenOptions
  /** The server. */
  readonly remote: ConnectOptions
  readonly basin: string
}

/**
 * All rooms. Each tab opens the storage of this device, and everything that is shown is read there; the
 * streams are kept in sync with those of a server.
 */
export class Chat {
  readonly #local: Basin
  readonly #remote: Basin
  readonly #synced: SyncedRooms
  /** Has a record for each room that was created, on any device. */
  readonly #additions: SyncedStream
  /** The names that the stream above has. */
  readonly #added$: Observable<readonly string[]>
  /** The names of the streams here and on the server; undefined until they were listed. */
  readonly #listed = new BehaviorSubject<readonly string[] | undefined>(undefined)
  readonly #opened = new Subject<void>()
  readonly #close: () => Promise<void>

  private constructor(hw: Headwater, server: Headwater, basin: string) {
    this.#close = async () => {
      await Promise.all(this.#synced.streams.map((stream) => stream.close()))
      await Promise.all([hw.close(), server.close()])
    }
    this.#local = hw.basin(basin)
    this.#remote = server.basin(basin)
    this.#synced = new SyncedRooms(this.#remote, this.#local)
    this.#additions = this.#synced.acquire(ADDED_ROOMS)
    this.#added$ = this.#additions.view$.pipe(
      tap(({ change }) => {
        if (change.inserted.length > 0) void this.refresh()
      }),
      filter(({ isCaughtUp }) => isCaughtUp),
      map((view) => view.toArray().map(({ body }) => body)),
      shareReplay({ bufferSize: 1, refCount: true }),
    )
    this.live$.subscribe(() => void this.refresh())
  }

  /** Opens the storage of this device. Whether the server can be reached makes no difference. */
  static async open({ local, remote, basin }: ChatOptions): Promise<Chat> {
    const hw = await open(local)
    try {
      await hw.ensureBasin(basin, { defaultStreamConfig: { retentionPolicy: 'infinite' } })
      // Nothing is repeated here: syncing does that.
      const server = await connect({ ...remote, retries: 0 })
      return new Chat(hw, server, basin)
    } catch (error) {
      await hw.close()
      throw error
    }
  }

  /** The state of the connection: of the stream that is worst off. */
  get state$(): Observable<MirrorState> {
    return this.#opened.pipe(
      startWith(undefined),
      switchMap(() => combineLatest(this.#synced.streams.map(({ state$ }) => state$))),
      map(weightiest),
      distinctUntilChanged(),
    )
  }

  /** Emits when the server is reached, and again after each interruption. */
  get live$(): Observable<unknown> {
    return this.#additions.state$.pipe(filter(({ kind }) => kind === 'live'))
  }

  /** Connects at once. */
  retry(): void {
    for (const { mirror } of this.#synced.streams) mirror.retry()
  }

  /** Begins the copies again that cannot be continued. Messages that wait are kept. */
  async restart(): Promise<void> {
    for (const { mirror, state } of this.#synced.streams) {
      if (actionOf(state) !== 'restart') continue
      await this.#synced.create(mirror.remote.name)
      await mirror.restart()
    }
  }

  room(name: string): Room {
    const streamName = PREFIX + name
    const sync = {
      stream$: this.#synced.stream$(streamName),
      acquire: async () => {
        await this.#assertRoom(name)
        const synced = this.#synced.acquire(streamName)
        this.#opened.next()
        return synced
      },
      release: () => this.#synced.release(streamName).then(() => this.#opened.next()),
    }
    return new Room(name, this.#local.stream(streamName), sync)
  }

  /** Creates a room unless it exists; another device may be creating it at the same time. Resolves to its name. */
  async createRoom(input: string): Promise<string> {
    const name = roomNameOf(input)
    const names = await firstValueFrom(this.roomNames$)
    if (!names.includes(name)) await this.#additions.append(name)
    return name
  }

  /** Resolves if the room exists, as far as this device can know. Rejects with `stream_not_found`. */
  async #assertRoom(name: string): Promise<void> {
    const found$ = combineLatest([this.#added$, this.#listed, this.#additions.state$]).pipe(
      map(([added, listed, { kind }]) => {
        if (added.includes(name) || listed?.includes(name)) return true
        const isKnown = listed !== undefined && kind !== 'connecting' && kind !== 'catching-up'
        return isKnown ? false : undefined
      }),
      filter((isFound) => isFound !== undefined),
    )
    if (!(await firstValueFrom(found$))) throw new HeadwaterError('stream_not_found', 'no such room')
  }

  /** Emits the names of all rooms, and again when any device has added one. */
  get roomNames$(): Observable<readonly string[]> {
    return combineLatest([this.#added$, this.#listed]).pipe(
      map(([added, listed = []]) => [...new Set([...added, ...listed])].filter(isRoomName)),
    )
  }

  /** Lists the rooms again: another program may have created some by the wire protocol. */
  async refresh(): Promise<void> {
    const listings = [this.#local, this.#remote].map((basin) => this.#namesIn(basin).catch(() => []))
    this.#listed.next((await Promise.all(listings)).flat())
  }

  /** Fetches what is new in rooms that are not open, and sends what waits in them. */
  async visitRooms(): Promise<void> {
    if (this.#additions.state.kind !== 'live') return
    const names = await firstValueFrom(this.roomNames$)
    await this.#synced.visit(names.map((name) => PREFIX + name))
  }

  /** Ends the sync. Everything stays on this device. */
  close(): Promise<void> {
    return this.#close()
  }

  async #namesIn(basin: Basin): Promise<readonly string[]> {
    const names: string[] = []
    for (let startAfter = ''; ; ) {
      const page = await basin.listStreams({ prefix: PREFIX, startAfter, limit: LIST_LIMIT })
      names.push(...page.items.map(({ name }) => name.slice(PREFIX.length)))
      if (!page.hasMore) return names
      startAfter = PREFIX + names.at(-1)
    }
  }
}
