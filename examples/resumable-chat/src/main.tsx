import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'

// The address names the chat, so that it can be opened in another tab.
if (!/^#[\w-]{1,64}$/.test(location.hash)) location.replace(`#${crypto.randomUUID()}`)

createRoot(document.getElementById('app')!).render(<App id={location.hash.slice(1)} />)
