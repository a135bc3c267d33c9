/** What happened to a task. Each record of the stream is one of these. */
export type TodoEvent =
  | {
      readonly type: 'added'
      readonly id: string
      readonly title: string
      /** Tasks are listed by it: the time at which the task was first added, in milliseconds. */
      readonly rank: number
      readonly isDone?: boolean
    }
  | { readonly type: 'renamed'; readonly id: string; readonly title: string }
  | { readonly type: 'checked'; readonly id: string; readonly isDone: boolean }
  | { readonly type: 'removed'; readonly id: string }

export interface Task {
  readonly id: string
  readonly title: string
  readonly rank: number
  readonly isDone: boolean
  /** Whether an event of the task has not reached the server yet. */
  readonly isPending: boolean
}

/** The list, derived from all events. */
export interface TodoState {
  readonly tasks: readonly Task[]
  /** The number of events that have not reached the server yet. */
  readonly pending: number
}

export const EMPTY: TodoState = { tasks: [], pending: 0 }

/** Raised whenever {@link reduceTodo} changes, so that snapshots of the former one are not used. */
export const REDUCER_VERSION = 1

/**
 * The state after an event. Events of tasks that do not exist are ignored, because another device may have
 * removed the task first. So is everything that is no event: a list must outlive a mistake of one device.
 */
export function reduceTodo(
  state: TodoState,
  { value, isPending }: { readonly value: TodoEvent; readonly isPending?: boolean },
): TodoState {
  if (!isTodoEvent(value)) return state
  const tasks = reduceTasks(state.tasks, value, isPending ?? false)
  return { tasks, pending: state.pending + (isPending ? 1 : 0) }
}

function reduceTasks(tasks: readonly Task[], event: TodoEvent, isPending: boolean): readonly Task[] {
  const change = (part: Partial<Task>) =>
    tasks.map((task) =>
      task.id === event.id ? { ...task, ...part, isPending: task.isPending || isPending } : task,
    )
  switch (event.type) {
    case 'added': {
      if (tasks.some(({ id }) => id === event.id)) return tasks
      const { id, title, rank, isDone = false } = event
      return [...tasks, { id, title, rank, isDone, isPending }].sort(byRank)
    }
    case 'renamed':
      return change({ title: event.title })
    case 'checked':
      return change({ isDone: event.isDone })
    case 'removed':
      return tasks.filter(({ id }) => id !== event.id)
  }
}

function byRank(one: Task, other: Task): number {
  return one.rank - other.rank || (one.id < other.id ? -1 : 1)
}

function isTodoEvent(value: unknown): value is TodoEvent {
  const { type, id, title, rank, isDone } = Object(value) as Readonly<Record<string, unknown>>
  if (typeof id !== 'string') return false
  if (type === 'added') return typeof title === 'string' && typeof rank === 'number'
  if (type === 'renamed') return typeof title === 'string'
  return type === 'checked' ? typeof isDone === 'boolean' : type === 'removed'
}
