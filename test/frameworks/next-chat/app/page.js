import { redirect } from 'next/navigation'
import { connection } from 'next/server'

/** Begins a chat. Its address can be opened in another tab. */
export default async function Page() {
  await connection()
  redirect(`/chats/${crypto.randomUUID()}`)
}
