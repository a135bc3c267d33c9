import type { Command } from '../model/command.ts'
import type { StreamState } from './stream-state.ts'

/**
 * The state after a command record that was assigned `seqNum` (wire-behaviour.md 3.5, 4.1). A trim reaches at most through the command
 * record itself and never moves back.
 */
export function applyCommand(state: StreamState, command: Command, seqNum: number): StreamState {
  if (command.kind === 'fence') return { ...state, fencingToken: command.token }
  const trimPoint = Math.min(command.seqNum, seqNum + 1)
  return trimPoint > state.trimPoint ? { ...state, trimPoint } : state
}
