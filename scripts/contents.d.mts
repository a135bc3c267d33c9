export function contents(): {
  readonly group: string
  readonly pages: readonly { readonly title: string; readonly page: string; readonly about: string }[]
}[]
