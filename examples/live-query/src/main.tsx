import { DurableStream } from '@durable-streams/client'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { openList } from './items.ts'
import './style.css'

const url = new URL('/v1/stream/list', location.href).href
await DurableStream.create({ url, contentType: 'application/json' })
const list = openList(url)
await list.preload()

createRoot(document.getElementById('app')!).render(<App list={list} />)
