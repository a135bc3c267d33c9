import { HeadwaterError } from 'headwater'
import { useSyncState } from 'headwater/react'
import { type SubmitEvent, useCallback, useEffect, useState, useSyncExternalStore } from 'react'
import type { Task, TodoEvent } from './todo.ts'
import type { TodoList } from './todo-list.ts'

const FILTERS = {
  All: () => true,
  Open: ({ isDone }: Task) => !isDone,
  Done: ({ isDone }: Task) => isDone,
}

export function App({ list }: { list: TodoList }) {
  const { tasks, pending } = useTodos(list)
  const [filter, setFilter] = useState<keyof typeof FILTERS>('All')
  const [problem, setProblem] = useState<unknown>()
  const run = (...events: TodoEvent[]) => {
    list.do(...events).catch(setProblem)
  }
  useEffect(() => {
    list.state.loaded().catch(setProblem)
  }, [list])

  const shown = tasks.filter(FILTERS[filter])
  const done = tasks.filter(FILTERS.Done)
  return (
    <>
      <header>
        <h1>To-do list</h1>
        <Connection list={list} pending={pending} />
      </header>
      {problem !== undefined && <p role="alert">{textOf(problem)}</p>}
      <AddTask onAdd={(title) => run({ type: 'added', id: crypto.randomUUID(), title })} />
      <fieldset>
        <legend>Show</legend>
        {(Object.keys(FILTERS) as (keyof typeof FILTERS)[]).map((each) => (
          <label key={each}>
            <input type="radio" name="filter" checked={each === filter} onChange={() => setFilter(each)} />
            {each}
          </label>
        ))}
      </fieldset>
      <ul aria-label="Tasks">
        {shown.map((task) => (
          <TaskRow key={task.id} task={task} run={run} />
        ))}
      </ul>
      {tasks.length === 0 && (
        <p className="faint">Nothing to do. Everyone with this page sees what you add.</p>
      )}
      {done.length > 0 && (
        <button
          type="button"
          onClick={() => run(...done.map(({ id }) => ({ type: 'removed', id }) as const))}
        >
          Remove what is done
        </button>
      )}
    </>
  )
}

/** Renders the component when the list changes. */
function useTodos({ state }: TodoList) {
  const subscribe = useCallback(
    (onChange: () => void) => {
      // Errors are those of `loaded`.
      const subscription = state.value$.subscribe({ next: onChange, error: () => {} })
      return () => subscription.unsubscribe()
    },
    [state],
  )
  return useSyncExternalStore(subscribe, () => state.value)
}

function AddTask({ onAdd }: { onAdd: (title: string) => void }) {
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    onAdd(String(new FormData(form).get('title')).trim())
    form.reset()
  }
  return (
    <form onSubmit={submit} autoComplete="off">
      <input
        name="title"
        aria-label="New task"
        placeholder="What is there to do?"
        maxLength={500}
        pattern=".*\S.*"
        required
      />
      <button type="submit">Add</button>
    </form>
  )
}

function TaskRow({ task, run }: { task: Task; run: (event: TodoEvent) => void }) {
  const { id, title, isDone, isPending } = task
  return (
    <li data-done={isDone}>
      <input
        type="checkbox"
        aria-label={`Done: ${title}`}
        checked={isDone}
        onChange={(event) => run({ type: 'checked', id, isDone: event.target.checked })}
      />
      <span>{title}</span>
      {isPending && <small title="Not on the server yet">waits</small>}
      <button type="button" aria-label={`Remove: ${title}`} onClick={() => run({ type: 'removed', id })}>
        ×
      </button>
    </li>
  )
}

const STATES = {
  connecting: 'Connecting …',
  'catching-up': 'Loading …',
  live: 'Up to date',
  offline: 'Offline',
  waiting: 'Waiting',
  closed: 'Closed',
}

/** Shows whether the list is up to date, and how many changes wait to be sent. */
function Connection({ list: { stream }, pending }: { list: TodoList; pending: number }) {
  const state = useSyncState(stream)
  if (state.kind === 'stopped') {
    // The server has lost the list, or has another one: what this device has stays until the user decides.
    const isRetriable = state.reason === 'denied' || state.reason === 'failed'
    const goOn = () => (isRetriable ? stream.mirror.retry() : void stream.mirror.restart().catch(() => {}))
    return (
      <p role="status">
        Stopped: {state.reason}{' '}
        <button type="button" onClick={goOn}>
          {isRetriable ? 'Try again' : 'Load the list of the server'}
        </button>
      </p>
    )
  }
  const waiting = pending === 0 ? '' : ` · ${pending} ${pending === 1 ? 'change waits' : 'changes wait'}`
  return (
    <p role="status" data-state={state.kind}>
      {STATES[state.kind]}
      {waiting}
    </p>
  )
}

function textOf(error: unknown): string {
  if (!HeadwaterError.is(error)) return `Something went wrong: ${error}`
  if (error.code === 'storage_full') return 'The storage of this device is full.'
  if (error.code === 'storage') return 'This browser does not store data. Is this a private window?'
  return error.message
}
