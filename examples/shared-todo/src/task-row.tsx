import { type KeyboardEvent, useState } from 'react'
import type { Task } from './todo.ts'
import type { TodoList } from './todo-list.ts'

interface Props {
  readonly task: Task
  readonly list: TodoList
  readonly run: (action: Promise<void>) => void
}

export function TaskRow({ task: { id, title, isDone, isPending }, list, run }: Props) {
  const [draft, setDraft] = useState<string>()
  const finish = (text: string | undefined) => {
    setDraft(undefined)
    const renamed = text?.trim() ?? ''
    if (renamed !== '' && renamed !== title) run(list.rename(id, renamed))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return
    if (event.key === 'Enter') finish(draft)
    if (event.key === 'Escape') finish(undefined)
  }
  return (
    <li className="task" data-done={isDone} data-pending={isPending}>
      <input
        type="checkbox"
        aria-label={`Done: ${title}`}
        checked={isDone}
        onChange={(event) => run(list.check(id, event.target.checked))}
      />
      {draft === undefined ? (
        <button type="button" className="title" title="Rename" dir="auto" onClick={() => setDraft(title)}>
          {title}
        </button>
      ) : (
        <input
          className="title"
          aria-label="Title"
          dir="auto"
          maxLength={500}
          // biome-ignore lint/a11y/noAutofocus: the user has asked for it by clicking the title
          autoFocus
          value={draft}
          onChange={(event) => setDraft(event.target.value)}
          onKeyDown={onKeyDown}
          onBlur={() => finish(draft)}
        />
      )}
      {isPending && (
        <svg className="pending" viewBox="0 0 20 20" role="img" aria-label="Not on the server yet">
          <title>Not on the server yet</title>
          <circle cx="10" cy="10" r="7" />
          <path d="M10 6v4l2.5 2" />
        </svg>
      )}
      <button
        type="button"
        className="remove"
        aria-label={`Remove: ${title}`}
        onClick={() => run(list.remove(id))}
      >
        <svg viewBox="0 0 20 20" aria-hidden="true">
          <path d="M5 5l10 10M15 5L5 15" />
        </svg>
      </button>
    </li>
  )
}
