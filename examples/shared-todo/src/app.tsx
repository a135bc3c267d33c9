import { useEffect, useState } from 'react'
import { AddTask } from './add-task.tsx'
import { Connection } from './connection.tsx'
import { problemText } from './problem.ts'
import { TaskRow } from './task-row.tsx'
import type { Task } from './todo.ts'
import type { TodoList } from './todo-list.ts'
import { UndoButtons } from './undo-buttons.tsx'
import { useObservable } from './use-observable.ts'

const FILTERS = {
  All: () => true,
  Open: ({ isDone }: Task) => !isDone,
  Done: ({ isDone }: Task) => isDone,
}
type Filter = keyof typeof FILTERS

const EMPTY_TEXTS: Readonly<Record<Filter, string>> = {
  All: 'Nothing to do yet. Everyone with this page sees what you add.',
  Open: 'Everything is done.',
  Done: 'Nothing is done yet.',
}

export function App({ list }: { readonly list: TodoList }) {
  const { tasks, pending } = useObservable(list.state$, () => list.state.value)
  const [filter, setFilter] = useState<Filter>('All')
  const [problem, setProblem] = useState<string>()
  const run = (action: Promise<void>) => {
    action.catch((error: unknown) => setProblem(problemText(error)))
  }
  useEffect(() => {
    const subscription = list.state$.subscribe({ error: (error) => setProblem(problemText(error)) })
    return () => subscription.unsubscribe()
  }, [list])

  const shown = tasks.filter(FILTERS[filter])
  const open = tasks.filter(FILTERS.Open).length
  return (
    <main className="app">
      <header className="bar">
        <img src="icon.svg" alt="" width="32" height="32" />
        <h1>Pebble</h1>
        <Connection stream={list.stream} pending={pending} />
      </header>
      {problem !== undefined && (
        <p className="problem" role="alert">
          <span>{problem}</span>
          <button type="button" onClick={() => setProblem(undefined)}>
            Dismiss
          </button>
        </p>
      )}
      <AddTask onAdd={(title) => run(list.add(title))} />
      <div className="tools">
        <fieldset className="filters">
          <legend className="hidden">Show</legend>
          {(Object.keys(FILTERS) as Filter[]).map((each) => (
            <label key={each}>
              <input type="radio" name="filter" checked={each === filter} onChange={() => setFilter(each)} />
              <span>{each}</span>
            </label>
          ))}
        </fieldset>
        <UndoButtons list={list} run={run} />
      </div>
      <section aria-label="Tasks" className="tasks">
        <ul>
          {shown.map((task) => (
            <TaskRow key={task.id} task={task} list={list} run={run} />
          ))}
        </ul>
        {shown.length === 0 && <p className="empty">{EMPTY_TEXTS[filter]}</p>}
      </section>
      <footer className="foot">
        <p>{open === 1 ? '1 task is open' : `${open} tasks are open`}</p>
        {open < tasks.length && (
          <button type="button" className="link" onClick={() => run(list.removeDone())}>
            Remove what is done
          </button>
        )}
      </footer>
    </main>
  )
}
