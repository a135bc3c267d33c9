const NAME_LENGTH_MAX = 100
/** A visible character: not a space, control character or mark. */
const VISIBLE = /[^\p{C}\p{M}\p{Z}]/u

/** Returns the name of a new room. Throws a `RangeError` that explains what is wrong with the input. */
export function roomNameOf(input: string): string {
  // Names that look the same must be the same.
  const name = input.normalize().trim().replace(/\s+/g, ' ')
  if (!VISIBLE.test(name)) throw new RangeError('Give the room a name.')
  if (name.length > NAME_LENGTH_MAX)
    throw new RangeError(`The name must not have more than ${NAME_LENGTH_MAX} characters.`)
  return name
}

/** Returns whether a name that another device has written is one that this page could have given. */
export function isRoomName(name: string): boolean {
  return VISIBLE.test(name) && name.length <= NAME_LENGTH_MAX && !name.includes('\0')
}
