import { explain } from './problem.ts'
import { element } from './template.ts'

/** Sets up the form that creates a room. */
export function newRoomForm(create: (name: string) => Promise<void>): void {
  const form = element<HTMLFormElement>('new-room')
  const field = element<HTMLInputElement>('new-room-name')
  const problem = element('new-room-problem')

  function show(message: string): void {
    problem.textContent = message
    problem.hidden = message === ''
    field.setAttribute('aria-invalid', String(message !== ''))
  }

  async function submit(): Promise<void> {
    try {
      await create(field.value)
      field.value = ''
      show('')
    } catch (error) {
      show(explain(error))
      field.focus()
    }
  }

  field.addEventListener('input', () => show(''))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void submit()
  })
}
