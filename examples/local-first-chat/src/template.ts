/** An element of the page. */
export function element<Name extends HTMLElement = HTMLElement>(id: string): Name {
  return document.getElementById(id) as Name
}

/** The part of an element that has this name in `data-part`. */
export function part<Part extends HTMLElement = HTMLElement>(of: HTMLElement, name: string): Part {
  return of.querySelector<Part>(`[data-part="${name}"]`)!
}

/** A copy of what is in a template. What people wrote goes into it as `textContent`, never as markup. */
export function copyOf(template: string): HTMLElement {
  const { content } = element<HTMLTemplateElement & HTMLElement>(template)
  return content.firstElementChild!.cloneNode(true) as HTMLElement
}
