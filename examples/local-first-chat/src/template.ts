/** Returns an element of the page. */
export function element<Name extends HTMLElement = HTMLElement>(id: string): Name {
  return document.getElementById(id) as Name
}

/** Returns the descendant with this name in `data-part`. */
export function part<Part extends HTMLElement = HTMLElement>(of: HTMLElement, name: string): Part {
  return of.querySelector<Part>(`[data-part="${name}"]`)!
}

/** Copies the content of a template. User input goes into it as `textContent`, never as markup. */
export function copyOf(template: string): HTMLElement {
  const { content } = element<HTMLTemplateElement & HTMLElement>(template)
  return content.firstElementChild!.cloneNode(true) as HTMLElement
}
