export declare const APPS: Readonly<
  Record<
    string,
    {
      readonly packages?: readonly string[]
      readonly edits?: readonly (readonly [from: string | RegExp, to: string])[]
    }
  >
>
