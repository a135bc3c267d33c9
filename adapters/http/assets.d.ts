/** A YAML document as JSON text: see `scripts/bundled-assets.mjs`. */
declare module '*?json' {
  const text: string
  export default text
}
