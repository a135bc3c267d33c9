/** The text of a module with everything that it imports: see `scripts/bundled-assets.mjs`. */
declare module '*?script' {
  const text: string
  export default text
}

/** The text of a style sheet. */
declare module '*?inline' {
  const text: string
  export default text
}
