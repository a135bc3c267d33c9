import type { Task, TodoEvent } from './todo.ts'

/** An event, and the event that compensates for it. */
interface Step {
  readonly done: TodoEvent
  readonly undone: TodoEvent
}

/** What a user did with one click, and can undo with one. */
export interface Action {
  /** For people, such as "Remove “Milk”". */
  readonly name: string
  readonly steps: readonly Step[]
}

/** The actions of this tab that can be undone and redone, the latest ones last. */
export interface UndoHistory {
  readonly undo: readonly Action[]
  readonly redo: readonly Action[]
}

export const NO_HISTORY: UndoHistory = { undo: [], redo: [] }

const ACTIONS_MAX = 100

/** An action that appends events to a list of these tasks. Events without effect are left out. */
export function actionOf(name: string, tasks: readonly Task[], events: readonly TodoEvent[]): Action {
  const steps = events.flatMap((done) => {
    const undone = compensationOf(tasks, done)
    return undone === undefined ? [] : [{ done, undone }]
  })
  return { name, steps }
}

/**
 * The action that undoes another one, or undefined if nothing of it is left. What another device has changed
 * since is not touched: undo must not discard the work of others.
 */
export function reversalOf({ name, steps }: Action, tasks: readonly Task[]): Action | undefined {
  const left = steps.filter(({ done }) => isInEffect(tasks, done))
  if (left.length === 0) return undefined
  return { name, steps: left.map(({ done, undone }) => ({ done: undone, undone: done })).reverse() }
}

export function withAction({ undo }: UndoHistory, action: Action): UndoHistory {
  return { undo: [...undo, action].slice(-ACTIONS_MAX), redo: [] }
}

function compensationOf(tasks: readonly Task[], event: TodoEvent): TodoEvent | undefined {
  const { id } = event
  const task = tasks.find((each) => each.id === id)
  if (event.type === 'added') return { type: 'removed', id }
  if (task === undefined || isInEffect(tasks, event)) return undefined
  const { title, rank, isDone } = task
  if (event.type === 'removed') return { type: 'added', id, title, rank, isDone }
  return event.type === 'renamed' ? { type: 'renamed', id, title } : { type: 'checked', id, isDone }
}

/** Whether the list still shows what an event did. */
function isInEffect(tasks: readonly Task[], event: TodoEvent): boolean {
  const task = tasks.find(({ id }) => id === event.id)
  if (event.type === 'removed') return task === undefined
  if (task === undefined) return false
  if (event.type === 'renamed') return task.title === event.title
  return event.type === 'added' || task.isDone === event.isDone
}
