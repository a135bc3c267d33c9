import { useEffect } from 'react'
import type { TodoList } from './todo-list.ts'
import { useObservable } from './use-observable.ts'

interface Props {
  readonly list: TodoList
  readonly run: (action: Promise<void>) => void
}

/** Two buttons, and the keys of the platform where no text is edited. */
export function UndoButtons({ list, run }: Props) {
  const { undo, redo } = useObservable(list.history$, () => list.history)
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const isInText = event.target instanceof HTMLInputElement && event.target.type === 'text'
      if (event.key.toLowerCase() !== 'z' || !(event.ctrlKey || event.metaKey) || isInText) return
      event.preventDefault()
      run(event.shiftKey ? list.redo() : list.undo())
    }
    window.addEventListener('keydown', onKeyDown)
    return () => window.removeEventListener('keydown', onKeyDown)
  })
  return (
    <div className="undo">
      <button
        type="button"
        disabled={undo.length === 0}
        title={undo.at(-1)?.name ?? 'Nothing to undo'}
        onClick={() => run(list.undo())}
      >
        Undo
      </button>
      <button
        type="button"
        disabled={redo.length === 0}
        title={redo.at(-1)?.name ?? 'Nothing to redo'}
        onClick={() => run(list.redo())}
      >
        Redo
      </button>
    </div>
  )
}
