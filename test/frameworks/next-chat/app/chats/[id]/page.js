import { notFound } from 'next/navigation'
import { isId, messagesOf } from '../../../chats.js'
import { ChatPage } from './chat-page.js'

export default async function Page({ params }) {
  const { id } = await params
  if (!isId(id)) notFound()
  return <ChatPage id={id} finished={await messagesOf(id)} />
}
