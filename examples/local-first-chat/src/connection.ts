import type { MirrorState } from 'headwater/sync'

/** From what needs the user to what does not. */
const BY_WEIGHT = ['stopped', 'offline', 'connecting', 'catching-up', 'live', 'waiting', 'closed'] as const

/** Returns the state to show for several streams: the one that matters most. */
export function weightiest(states: readonly MirrorState[]): MirrorState {
  const weightOf = ({ kind }: MirrorState) => BY_WEIGHT.indexOf(kind)
  return states.reduce((one, other) => (weightOf(other) < weightOf(one) ? other : one), { kind: 'closed' })
}

/** A word for the state. */
export function nameOf({ kind }: MirrorState): string {
  if (kind === 'catching-up') return 'Syncing'
  return kind === 'live'
    ? 'In sync'
    : kind === 'closed'
      ? 'Closed'
      : kind === 'offline'
        ? 'Offline'
        : CAPITAL[kind]
}

const CAPITAL = { connecting: 'Connecting', stopped: 'Stopped', waiting: 'Waiting' } as const

const STOPPED = {
  trimmed: 'The server no longer has some messages that this device has not read.',
  replaced: 'The server has another room of this name than the one that this device has read.',
  missing: 'The server no longer has this room.',
  denied: 'The server does not permit this device to read.',
  failed: 'Syncing failed.',
} as const

/** Explains a state in which the user may want to do something; undefined for the others. */
export function explanationOf(state: MirrorState, now: number): string | undefined {
  if (state.kind === 'connecting') return 'Connecting …'
  if (state.kind === 'stopped') return `${STOPPED[state.reason]} What is stored here stays readable.`
  if (state.kind !== 'offline') return undefined
  const seconds = Math.max(0, Math.ceil((state.nextAttemptAt - now) / 1_000))
  const next = seconds === 0 ? 'Trying now …' : `Next attempt in ${seconds} s.`
  return `Offline: messages are kept on this device and sent later. ${next}`
}

/** Returns what the button does in this state, if anything. */
export function actionOf(state: MirrorState): 'retry' | 'restart' | undefined {
  if (state.kind === 'offline') return 'retry'
  if (state.kind !== 'stopped') return undefined
  return state.reason === 'denied' || state.reason === 'failed' ? 'retry' : 'restart'
}
