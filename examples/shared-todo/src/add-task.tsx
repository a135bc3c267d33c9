import { type FormEvent, useState } from 'react'

export function AddTask({ onAdd }: { readonly onAdd: (title: string) => void }) {
  const [title, setTitle] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (title.trim() === '') return
    onAdd(title.trim())
    setTitle('')
  }
  return (
    <form className="add" onSubmit={submit} autoComplete="off">
      <input
        aria-label="New task"
        placeholder="What is there to do?"
        dir="auto"
        maxLength={500}
        enterKeyHint="done"
        value={title}
        onChange={(event) => setTitle(event.target.value)}
      />
      <button type="submit" aria-label="Add" title="Add">
        <svg viewBox="0 0 20 20" aria-hidden="true">
          <path d="M10 4v12M4 10h12" />
        </svg>
      </button>
    </form>
  )
}
