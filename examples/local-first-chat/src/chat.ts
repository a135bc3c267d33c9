import { type Headwater, HeadwaterError, type OpenOptions, open } from 'headwater'
import { type ConnectOptions, connect } from 'headwater/client'
import { type MirrorState, type SyncedBasin, type SyncedStream, syncedBasin } from 'headwater/sync'
import {
  BehaviorSubject,
  combineLatest,
  distinctUntilChanged,
  filter,
  firstValueFrom,
  map,
  type Observable,
  of,
  switchMap,
} from 'rxjs'
import { actionOf, weightiest } from './connection.ts'
import { Room } from './room.ts'
import { isRoomName, roomNameOf } from './room-name.ts'

const PREFIX = 'rooms/'
/** How many records of a room are copied to this device at first. Earlier ones follow on request. */
const COPIED_RECORDS = 1_000
/** How often new rooms are found, and new messages of rooms that have no connection. */
const DISCOVER_MS = 5_000

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
  readonly #rooms: SyncedBasin
  /** The stream of the room that is shown. */
  readonly #shown = new BehaviorSubject<SyncedStream | undefined>(undefined)
  readonly #engines: readonly Headwater[]

  private constructor(rooms: SyncedBasin, engines: readonly Headwater[]) {
    this.#rooms = rooms
    this.#engines = engines
  }

  /** Opens the storage of this device. Whether the server can be reached makes no difference. */
  static async open({ local, remote, basin }: ChatOptions): Promise<Chat> {
    const hw = await open(local)
    try {
      await hw.ensureBasin(basin, { defaultStreamConfig: { retentionPolicy: 'infinite' } })
      // Nothing is repeated here: syncing does that.
      const server = await connect({ ...remote, retries: 0 })
      const rooms = await syncedBasin({
        remote: server.basin(basin),
        local: hw.basin(basin),
        prefix: PREFIX,
        from: { tailOffset: COPIED_RECORDS },
        discoverMs: DISCOVER_MS,
      })
      return new Chat(rooms, [hw, server])
    } catch (error) {
      await hw.close()
      throw error
    }
  }

  /** The state of the connection, or of the room that is shown if that is worse off. */
  get state$(): Observable<MirrorState> {
    const shown$ = this.#shown.pipe(switchMap((shown) => shown?.state$ ?? of({ kind: 'waiting' } as const)))
    return combineLatest([this.#rooms.state$, shown$]).pipe(map(weightiest), distinctUntilChanged())
  }

  /** Connects at once. */
  retry(): void {
    this.#rooms.retry()
  }

  /** Begins the copy of the room again that cannot be continued. Messages that wait are kept. */
  async restart(): Promise<void> {
    const shown = this.#shown.value
    if (shown !== undefined && actionOf(shown.state) === 'restart') await shown.mirror.restart()
  }

  room(name: string): Room {
    const streamName = PREFIX + name
    const open = async () => {
      await this.#assertRoom(name)
      const synced = this.#rooms.stream(streamName)
      this.#shown.next(synced)
      return synced
    }
    // To list a room does not count as use.
    return new Room(name, open, () => this.#rooms.stream(streamName, { isBackground: true }))
  }

  /** Creates a room unless it exists; another device may be creating it at the same time. Returns its name. */
  createRoom(input: string): string {
    const name = roomNameOf(input)
    this.#rooms.stream(PREFIX + name)
    return name
  }

  /** Emits the names of all rooms, and again when any device has added one. */
  get roomNames$(): Observable<readonly string[]> {
    return this.#rooms.streams$.pipe(
      map((streams) => streams.map(({ name }) => name.slice(PREFIX.length)).filter(isRoomName)),
      distinctUntilChanged((before, after) => before.join('\0') === after.join('\0')),
    )
  }

  /** Ends the sync. Everything stays on this device. */
  async close(): Promise<void> {
    await this.#rooms.close()
    await Promise.all(this.#engines.map((hw) => hw.close()))
  }

  /** Resolves if the room exists, as far as this device can know. Rejects with `stream_not_found`. */
  async #assertRoom(name: string): Promise<void> {
    const found$ = combineLatest([this.roomNames$, this.#rooms.state$]).pipe(
      map(([names, { kind }]) => names.includes(name) || (kind === 'connecting' ? undefined : false)),
      filter((isFound) => isFound !== undefined),
    )
    if (!(await firstValueFrom(found$))) throw new HeadwaterError('stream_not_found', 'no such room')
  }
}
