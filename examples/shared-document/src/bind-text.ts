import type * as Y from 'yjs'

/** Shows a text in an area, and applies what is typed to it as the smallest change. */
export function bindText(text: Y.Text, area: HTMLTextAreaElement): void {
  area.value = text.toString()
  area.addEventListener('input', () => {
    const [before, after] = [text.toString(), area.value]
    let start = 0
    while (start < before.length && before[start] === after[start]) start++
    let kept = 0
    const keptMax = Math.min(before.length, after.length) - start
    while (kept < keptMax && before.at(-1 - kept) === after.at(-1 - kept)) kept++
    text.doc!.transact(() => {
      text.delete(start, before.length - start - kept)
      text.insert(start, after.slice(start, after.length - kept))
    })
  })
  text.observe(({ transaction, delta }) => {
    if (transaction.local) return
    let position = 0
    for (const { retain = 0, insert, delete: removed = 0 } of delta) {
      const inserted = typeof insert === 'string' ? insert : ''
      position += retain
      // Moves the selection along with what others change before it.
      area.setRangeText(inserted, position, position + removed, 'preserve')
      position += inserted.length
    }
  })
}
