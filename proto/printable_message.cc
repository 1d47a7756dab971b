#include "proto/printable_message.h"

#include <string>
#include <vector>

#include "platform/printable_text.h"

namespace lengthwise {

using google::protobuf::FieldDescriptor;

void MakePrintable(google::protobuf::Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  std::string scratch;
  for (const FieldDescriptor* field : fields) {
    // ListFields returns set fields only, so a singular field has one value. Map entries are
    // messages.
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      for (int i = 0; i < count; ++i) {
        MakePrintable(field->is_repeated() ? *reflection.MutableRepeatedMessage(&message, field, i)
                                           : *reflection.MutableMessage(&message, field));
      }
      continue;
    }
    if (field->type() != FieldDescriptor::TYPE_STRING) continue;
    for (int i = 0; i < count; ++i) {
      const std::string& text =
          field->is_repeated() ? reflection.GetRepeatedStringReference(message, field, i, &scratch)
                               : reflection.GetStringReference(message, field, &scratch);
      if (platform::IsPrintable(text)) continue;
      std::string printable = platform::PrintableText(text);
      if (field->is_repeated()) {
        reflection.SetRepeatedString(&message, field, i, std::move(printable));
      } else {
        reflection.SetString(&message, field, std::move(printable));
      }
    }
  }
}

}  // namespace lengthwise
