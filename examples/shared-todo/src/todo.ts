/** A change of the list. Each record of the stream is one. */
export type TodoEvent =
  | { readonly type: 'added'; readonly id: string; readonly title: string }
  | { readonly type: 'checked'; readonly id: string; readonly isDone: boolean }
  | { readonly type: 'removed'; readonly id: string }

export interface Task {
  readonly id: string
  readonly title: string
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

/**
 * The state after an event. Events of tasks that do not exist change nothing, because another device may have
 * removed the task first.
 */
export function reduceTodo(
  { tasks, pending }: TodoState,
  { value, isPending = false }: { readonly value: TodoEvent; readonly isPending?: boolean },
): TodoState {
  return { tasks: reduceTasks(tasks, value, isPending), pending: pending + (isPending ? 1 : 0) }
}

function reduceTasks(tasks: readonly Task[], event: TodoEvent, isPending: boolean): readonly Task[] {
  switch (event.type) {
    case 'added':
      return [...tasks, { id: event.id, title: event.title, isDone: false, isPending }]
    case 'checked':
      return tasks.map((task) =>
        task.id === event.id
          ? { ...task, isDone: event.isDone, isPending: task.isPending || isPending }
          : task,
      )
    case 'removed':
      return tasks.filter(({ id }) => id !== event.id)
    default:
      // Of a later version of the app.
      return tasks
  }
}
