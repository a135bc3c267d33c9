/**
 * A function that holds a module with everything that it imports, minified, and returns its exports: see
 * `scripts/bundled-assets.mjs`. It refers to nothing outside itself, so its text is a script.
 */
declare module '*?function' {
  const program: () => unknown
  export default program
}

/** The text of a style sheet, minified. */
declare module '*?text' {
  const text: string
  export default text
}
