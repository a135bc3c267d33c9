/** What the other sessions of a storage need of one. */
export interface Peer {
  /** Whether it contends for the background work. */
  readonly wantsTurn: boolean
  setTurn(isOurs: boolean): void
  /** Called once another session is open. */
  markShared(): void
  logChanged(logId: string): void
  /** Resolves when no call is in flight. */
  idle(): Promise<unknown>
}

/**
 * The sessions of one storage, oldest first. They are held weakly: the engine of a reloaded module is never
 * closed, and a storage that stays open must not keep it in memory.
 */
export class Peers<Session extends Peer> {
  #sessions: WeakRef<Session>[] = []
  #elected: WeakRef<Session> | undefined

  get isEmpty(): boolean {
    return this.#alive().length === 0
  }

  add(session: Session): void {
    const others = this.#alive()
    this.#sessions.push(new WeakRef(session))
    if (others.length > 0) for (const one of [...others, session]) one.markShared()
  }

  remove(session: Session): void {
    this.#sessions = this.#sessions.filter((other) => other.deref() !== session)
    this.elect()
  }

  /** Tells the others that a log was changed by this session. */
  notifyOthers(session: Session, logId: string): void {
    if (this.#sessions.length === 1) return
    for (const other of this.#alive()) if (other !== session) other.logChanged(logId)
  }

  /**
   * Gives the background work to the newest session: of the engines that reloads leave open, it is the one in
   * use, and the others hold no timers.
   */
  elect(): void {
    const next = this.#alive().findLast(({ wantsTurn }) => wantsTurn)
    const current = this.#elected?.deref()
    if (next === current) return
    this.#elected = next && new WeakRef(next)
    if (current?.wantsTurn) current.setTurn(false)
    next?.setTurn(true)
  }

  async idle(): Promise<void> {
    await Promise.all(this.#alive().map((session) => session.idle()))
  }

  #alive(): Session[] {
    const sessions = this.#sessions.flatMap((session) => session.deref() ?? [])
    if (sessions.length < this.#sessions.length) {
      this.#sessions = this.#sessions.filter((session) => session.deref() !== undefined)
    }
    return sessions
  }
}
