import type { MirrorState } from 'headwater/sync'
import { combineLatest, map, of, startWith, switchMap, timer } from 'rxjs'
import type { Alert } from './alert.ts'
import type { Chat } from './chat.ts'
import { actionOf, explanationOf, nameOf } from './connection.ts'
import { element, part } from './template.ts'

const TICK_MS = 1_000
/** Connecting is shown only if it takes this long. */
const PATIENCE_MS = 1_500

const LABELS = { retry: 'Try now', restart: 'Begin again' } as const

/** Shows the state of the connection, and what the user can do about it. */
export class ConnectionBanner {
  readonly #element = element('connection')
  readonly #text = part(this.#element, 'text')
  readonly #button = part<HTMLButtonElement>(this.#element, 'act')
  readonly #status = element('network')
  readonly #chat: Chat
  readonly #alert: Alert
  #state: MirrorState = { kind: 'connecting' }

  constructor(chat: Chat, alert: Alert) {
    this.#chat = chat
    this.#alert = alert
    this.#button.addEventListener('click', () => void this.#act())
    const ticking$ = (state: MirrorState) =>
      state.kind === 'connecting'
        ? timer(PATIENCE_MS).pipe(
            map(() => true),
            startWith(false),
          )
        : state.kind === 'offline'
          ? timer(0, TICK_MS).pipe(map(() => true))
          : of(true)
    chat.state$
      .pipe(switchMap((state) => combineLatest([of(state), ticking$(state)])))
      .subscribe(([state, isShown]) => this.#show(state, isShown))
  }

  #show(state: MirrorState, isShown: boolean): void {
    this.#state = state
    this.#status.textContent = nameOf(state)
    this.#status.dataset.state = state.kind
    // A short attempt in between does not hide why the one before has failed.
    if (!isShown) return
    const text = explanationOf(state, Date.now())
    this.#element.hidden = text === undefined
    this.#element.dataset.state = state.kind
    this.#text.textContent = text ?? ''
    const action = actionOf(state)
    this.#button.hidden = action === undefined
    this.#button.textContent = action === undefined ? '' : LABELS[action]
  }

  async #act(): Promise<void> {
    try {
      if (actionOf(this.#state) === 'restart') await this.#chat.restart()
      else this.#chat.retry()
    } catch (error) {
      this.#alert.show(error)
    }
  }
}
