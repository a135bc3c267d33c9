// Packages of the examples that are not installed in the repository: `npm run check:examples` installs them, and
// checks with their types.
declare module '@vitejs/plugin-react'
declare module 'react-markdown'
declare module '@hono/node-server'
declare module 'hono' {
  export class Hono {
    [method: string]: (...args: unknown[]) => unknown
  }
}
declare module 'hono/body-limit'
