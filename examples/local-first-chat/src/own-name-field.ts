import { showAvatar } from './avatar.ts'
import { ownName, setOwnName } from './own-name.ts'
import { element } from './template.ts'

/** Sets up the field for the name of the user. Ignores an empty name. */
export function ownNameField(onChange: () => void): void {
  const field = element<HTMLInputElement>('own-name')
  const avatar = element('own-avatar')

  function show(): void {
    field.value = ownName()
    showAvatar(avatar, ownName())
  }

  field.addEventListener('change', () => {
    const name = field.value.trim()
    if (name !== '') setOwnName(name)
    show()
    onChange()
  })
  field.addEventListener('keydown', ({ key, isComposing }) => {
    if (key === 'Enter' && !isComposing) field.blur()
  })
  show()
}
