import { type Basin, type OpenOptions, open, type Stream } from 'headwater'
import { defer, merge, type Observable, Subject, startWith, switchMap } from 'rxjs'
import { Room } from './room.ts'

const PREFIX = 'rooms/'
const LIST_LIMIT = 1000
/** A visible character: not a space, control character or mark. */
const VISIBLE = /[^\p{C}\p{M}\p{Z}]/u

/**
 * All rooms of this browser. There is no server: each tab opens the storage itself and follows the same
 * streams.
 */
export class Chat {
  readonly #basin: Basin
  /** Has a record for each new room, which makes other tabs refresh their list. */
  readonly #additions: Stream
  readonly #refresh = new Subject<void>()

  private constructor(basin: Basin) {
    this.#basin = basin
    this.#additions = basin.stream('added-rooms')
  }

  static async open(options: OpenOptions, basinName: string): Promise<Chat> {
    const hw = await open(options)
    try {
      // Messages are kept forever, also in rooms that the service worker creates.
      await hw.ensureBasin(basinName, { defaultStreamConfig: { retentionPolicy: 'infinite' } })
      // Following a wrong address must not create a room.
      const basin = hw.basin(basinName, { autoCreate: false })
      await basin.ensureStream('added-rooms')
      return new Chat(basin)
    } catch (error) {
      await hw.close()
      throw error
    }
  }

  room(name: string): Room {
    return new Room(name, this.#basin.stream(PREFIX + name))
  }

  /**
   * Creates a room unless it exists; another tab may be creating it at the same time. Resolves to its name.
   */
  async createRoom(input: string): Promise<string> {
    // Names that look the same must be the same.
    const name = input.normalize().trim().replace(/\s+/g, ' ')
    if (!VISIBLE.test(name)) throw new RangeError('Give the room a name.')
    const { result } = await this.#basin.ensureStream(PREFIX + name)
    if (result === 'created') await this.#additions.append(name)
    return name
  }

  /** Emits the names of all rooms, and again whenever any tab has added one. */
  get roomNames$(): Observable<readonly string[]> {
    // The tail is read before the first list, so that no new room is missed.
    return defer(() => this.#additions.checkTail()).pipe(
      switchMap(({ seqNum }) =>
        merge(this.#additions.follow({ seqNum }).records$, this.#refresh).pipe(startWith(undefined)),
      ),
      switchMap(() => this.#roomNames()),
    )
  }

  /** Lists the rooms again, for changes made in other ways, such as the wire protocol. */
  refresh(): void {
    this.#refresh.next()
  }

  async #roomNames(): Promise<readonly string[]> {
    const names: string[] = []
    for (let startAfter = ''; ; ) {
      const page = await this.#basin.listStreams({ prefix: PREFIX, startAfter, limit: LIST_LIMIT })
      names.push(...page.items.map(({ name }) => name.slice(PREFIX.length)))
      if (!page.hasMore) return names
      startAfter = PREFIX + names.at(-1)
    }
  }
}
